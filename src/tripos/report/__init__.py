"""Reports for people: rendering alone, no figure is made here."""
