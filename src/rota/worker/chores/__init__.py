"""What any worker may do for all: rescue, tidy, unpark. Each is harmless when two do it at once."""
