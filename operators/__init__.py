"""What can be done to data: one operator a module, named after its id."""
