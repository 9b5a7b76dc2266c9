"""One module per figure (or two that one run gives). `catalogue.py` names them in order."""
