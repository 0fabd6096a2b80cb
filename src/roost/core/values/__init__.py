"""Values that everything else is built from: addresses, names, ids, priorities, checked text."""
