# Prometheus, as this system's package has it.
FROM scratch
COPY root/ /
COPY --chown=65532:65532 state/ /state/
USER 65532:65532
WORKDIR /state
VOLUME /state
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/state", "--web.listen-address=0.0.0.0:9090"]
