"""`python -m rota.cli`, for machines where the `rota` script is not on the path."""

from rota.cli.main import main

if __name__ == "__main__":
    main()
