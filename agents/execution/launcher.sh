# The rest of a session's launcher; confinement.py writes the values it uses above it.
# Runs with the server's whole environment, so every way out of it is `exec env -i`.
set -eu

# When memory runs out, the kernel shall end an agent before it ends the server.
echo 500 2>/dev/null >"/proc/$$/oom_score_adj" || :

# On resume the SDK makes a config folder of its own and names it here. Any other
# value was inherited from the server and must not reach the agent.
config_dir=
case ${CLAUDE_CONFIG_DIR:-} in
"$resume_prefix"*/* | "$resume_prefix"*..*) ;;
"$resume_prefix"?*)
    if [ -d "$CLAUDE_CONFIG_DIR" ] && [ ! -L "$CLAUDE_CONFIG_DIR" ]; then
        config_dir=$CLAUDE_CONFIG_DIR
    fi
    ;;
esac

if [ "$jailed" = no ]; then
    # Secrets are read from a file by a second shell: `env -i NAME=secret` shows in ps.
    exec env -i ${config_dir:+"resume_config_dir=$config_dir"} \
        ${CLAUDE_CODE_ENTRYPOINT+"CLAUDE_CODE_ENTRYPOINT=$CLAUDE_CODE_ENTRYPOINT"} \
        ${CLAUDE_AGENT_SDK_VERSION+"CLAUDE_AGENT_SDK_VERSION=$CLAUDE_AGENT_SDK_VERSION"} \
        ${CLAUDE_CODE_SDK_READS_SESSION_STATE+"CLAUDE_CODE_SDK_READS_SESSION_STATE=$CLAUDE_CODE_SDK_READS_SESSION_STATE"} \
        /bin/sh "$folder/unjailed.sh" "$@"
fi

# Limits are set inside: there they count this jail's processes, not all of the user's.
set -- --remount-ro / -- /usr/bin/prlimit "--nproc=$max_processes" \
    "--data=$max_memory_bytes" --core=0 -- "$cli" "$@"
if [ -n "$config_dir" ]; then
    set -- --bind "$config_dir" "$config_dir" \
        --setenv CLAUDE_CONFIG_DIR "$config_dir" "$@"
fi
if [ -n "${CLAUDE_CODE_ENTRYPOINT+set}" ]; then
    set -- --setenv CLAUDE_CODE_ENTRYPOINT "$CLAUDE_CODE_ENTRYPOINT" "$@"
fi
if [ -n "${CLAUDE_AGENT_SDK_VERSION+set}" ]; then
    set -- --setenv CLAUDE_AGENT_SDK_VERSION "$CLAUDE_AGENT_SDK_VERSION" "$@"
fi
if [ -n "${CLAUDE_CODE_SDK_READS_SESSION_STATE+set}" ]; then
    set -- --setenv CLAUDE_CODE_SDK_READS_SESSION_STATE \
        "$CLAUDE_CODE_SDK_READS_SESSION_STATE" "$@"
fi
# bwrap is pid 1 of the jail and its environment can be read there (/proc/1/environ):
# it must be empty from the start. Options come through a descriptor, not through ps.
exec env -i PATH=/usr/bin:/bin "$marker" "$bwrap" --args 9 "$@" 9<"$folder/jail.args"
