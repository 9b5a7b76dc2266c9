"""Children: processes of our own for handlers that must be killable, each running one job at a time."""
