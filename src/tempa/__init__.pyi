from tempa.client import AsyncClient as AsyncClient
from tempa.client import Client as Client
from tempa.client import JobFailed as JobFailed

__version__: str
