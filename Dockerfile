# The HTTP service without torch: docker build -t radialbeams . && docker run -p 8000:8000 radialbeams
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY radialbeams radialbeams
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir -c constraints.txt ".[serve]"

FROM python:3.11-slim
COPY --from=build /venv /venv
RUN useradd --system --no-create-home --shell /usr/sbin/nologin radialbeams
USER radialbeams
WORKDIR /
EXPOSE 8000
# Python's own client: the image has no curl.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s CMD \
    ["/venv/bin/python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
# SIGTERM finishes what was accepted. Set RADIALBEAMS_TOKEN to require a token.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/venv/bin/radialbeams", "serve", "--host", "0.0.0.0"]
