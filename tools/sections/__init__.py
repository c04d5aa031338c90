"""The parts of the results page, by what they are about."""
