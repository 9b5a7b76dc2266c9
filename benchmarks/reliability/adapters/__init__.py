"""One module per system. What each has is said in `drive.py`."""
