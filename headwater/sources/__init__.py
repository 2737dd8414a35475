"""Where the rows of tables come from: files and tables that Spark reads, streams that are followed."""
