# The image of the bot: `docker build -t keepsake .`; compose.yaml runs it with PostgreSQL and Redis.
#
# The first stage installs the locked dependencies, each by its hash, and the bot itself into a virtual environment. The second stage
# contains only that environment, so neither sources nor build caches end up in the image.

FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/keepsake
COPY requirements.lock ./
RUN /opt/keepsake/bin/python -m pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY adapters ./adapters
COPY bot ./bot
COPY memory ./memory
RUN /opt/keepsake/bin/python -m pip install --no-deps --no-build-isolation .

FROM python:3.11-slim
# Nobody logs in as this account. Its number is fixed, so that a volume keeps its owner from image to image.
RUN groupadd --gid 10001 keepsake \
 && useradd --uid 10001 --gid 10001 --home-dir /var/lib/keepsake --create-home --shell /usr/sbin/nologin keepsake \
 && chmod 0700 /var/lib/keepsake
COPY --from=build /opt/keepsake /opt/keepsake
COPY config.yaml /etc/keepsake/config.yaml
# /var/lib/keepsake/data holds the log, exports, the key of the erasure hashes, and the built-in servers if no address is given.
ENV PATH=/opt/keepsake/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    KEEPSAKE_CONFIG=/etc/keepsake/config.yaml \
    KEEPSAKE_DATA=/var/lib/keepsake/data \
    KEEPSAKE__HEALTH__BIND=127.0.0.1:8080
USER keepsake
WORKDIR /var/lib/keepsake
VOLUME /var/lib/keepsake
STOPSIGNAL SIGTERM
# Both a 503 (the database is unavailable) and no answer raise.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/ready', timeout=8)"]
ENTRYPOINT ["bot"]
CMD ["run"]
