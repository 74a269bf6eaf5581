"""The generated corpus: seeded chat documents in four categories, all words our own."""
