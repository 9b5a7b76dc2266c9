"""The command line: one file a noun. Commands ask the admin service; `output` alone prints."""
