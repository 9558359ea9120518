"""Text, HTML, charts and tables of plans, ledgers and results, all from public numbers."""
