"""`python -m tempa`: the command line, also where no script was installed."""

from tempa.cli.main import app

if __name__ == "__main__":
    app(prog_name="tempa")
