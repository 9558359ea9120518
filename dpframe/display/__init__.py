"""Text, HTML, charts, tables: of plans, ledgers, results, from public numbers."""
