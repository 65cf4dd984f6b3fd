# The appliance. docker/build.sh fills the context: the program, its libraries, authorities, users.
# Run it with a read-only root: it writes into /state alone.
FROM scratch
COPY root/ /
COPY --chown=65532:65532 state/ /state/
USER 65532:65532
WORKDIR /state
VOLUME /state
ENV IGGY_REPLICATE_LINK_STATE_FILE=/state/iggy-replicate.db
STOPSIGNAL SIGTERM
# Whether the process answers. A fault or a lag is no reason to restart it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/usr/bin/iggy-replicate", "health"]
ENTRYPOINT ["/usr/bin/iggy-replicate"]
CMD ["run"]
