"""One evaluation with its storing."""
