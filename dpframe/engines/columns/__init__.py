"""A caller's columns: their dtypes, by what their values are told apart, and how they are brought over."""
