"""Why a row is there: derivations of rows from the base rows of tables."""
