"""One module a layer of the examined system, each with the same named steps."""
