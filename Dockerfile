# For an image of your own, such as on a base of your own: `make build GOOS=linux` first, then build this. `make image` and releases
# pack the same image without a builder (hack/release/image), and a test keeps the two the same.
#
# It is one static binary and nothing else: no shell, no libc, no package to patch. The binary brings the certificate authorities.
FROM scratch

# BuildKit, Podman and Buildah set both to the platform that is being built.
ARG TARGETOS=linux
ARG TARGETARCH

ARG VERSION=dev
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="PhoneProof" \
      org.opencontainers.image.description="Verifies phone numbers over WhatsApp and Telegram, as a Kubernetes operator" \
      org.opencontainers.image.source="https://github.com/phoneproof/phoneproof" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"

COPY --chmod=0555 bin/phoneproof-${TARGETOS}-${TARGETARCH} /phoneproof

# A number, because runAsNonRoot cannot check a name and there is no /etc/passwd to look one up in.
USER 65532:65532
ENTRYPOINT ["/phoneproof"]
