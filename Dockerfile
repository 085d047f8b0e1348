# docker build -t tare . && docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" tare inspect my_model
# Builds the Debian package on a bare Debian 12 and installs it on another, for a user who is not root.
FROM debian:bookworm AS build
COPY scripts/install-deps.sh /source/scripts/
RUN /source/scripts/install-deps.sh
COPY . /source
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DTARE_TESTS=OFF -DTARE_MPI=OFF \
    && cmake --build /build \
    && cd /build && cpack -G DEB -B /packages

FROM debian:bookworm-slim
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends /packages/tare_*.deb \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home tare \
    && mkdir /work && chown tare /work
USER tare
WORKDIR /work
ENTRYPOINT ["tare"]
CMD ["help"]
