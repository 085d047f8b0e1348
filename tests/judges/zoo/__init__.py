"""Models of the zoo, by the library that writes them. Each function writes one SavedModel and returns records for it."""
