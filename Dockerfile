# The server, with the embedded engine and the clients of other engines:
#   docker build --tag isogloss .
#   docker run --publish 8080:8080 --volume /models:/models:ro isogloss --model /models/model.gguf
FROM python:3.13-slim AS build
WORKDIR /build
COPY . .
RUN python -m venv /opt/isogloss \
    && /opt/isogloss/bin/pip install --no-cache-dir '.[cli,hf,llamacpp,server]'

FROM python:3.13-slim
# OpenMP, for the embedded engine. Debian keeps one version a release, so that there is none to pin.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin isogloss \
    && install --directory --owner isogloss /var/cache/isogloss /var/lib/isogloss
COPY --from=build /opt/isogloss /opt/isogloss
ENV HF_HOME=/var/cache/isogloss/huggingface \
    ISOGLOSS_CACHE=/var/cache/isogloss \
    ISOGLOSS_STATE_DIR=/var/lib/isogloss \
    PATH=/opt/isogloss/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
USER 10001
VOLUME ["/var/cache/isogloss", "/var/lib/isogloss"]
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=120s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=8)"]
ENTRYPOINT ["isogloss", "serve", "--host", "0.0.0.0", "--port", "8080"]
