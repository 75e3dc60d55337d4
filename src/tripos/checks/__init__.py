"""Pure findings over rows, shared by lint and by the check step of the runners."""
