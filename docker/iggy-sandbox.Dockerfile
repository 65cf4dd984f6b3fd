# The test broker and the load tool. NOT Apache Iggy: for drills and demos only.
FROM scratch
COPY root/ /
COPY --chown=65532:65532 state/ /state/
USER 65532:65532
WORKDIR /state
VOLUME /state
ENTRYPOINT ["/usr/bin/iggy-sandbox"]
CMD ["--server", "0.9.0-edge.5", "--listen", "0.0.0.0:8090", "--control", "127.0.0.1:8091", "--data", "/state"]
