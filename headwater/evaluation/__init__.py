"""How expressions run: as DuckDB SQL in the driver where that is verified, else by Spark itself."""
