//! Commands whose process is not the server, by their names: clients of containers and of other machines. Their end,
//! with every pipe closed and nobody left in the group, says nothing of a server that runs elsewhere.
//!
//! Pure. A name too many only makes redial say less than it could; one that is missing makes it claim too much.

/// Programs that run what they are given somewhere else, or stand in for a server that is there.
const ELSEWHERE: [&str; 29] = [
    "docker",
    "podman",
    "nerdctl",
    "docker-compose",
    "lxc",
    "lxc-attach",
    "incus",
    "machinectl",
    "systemd-run",
    "distrobox",
    "toolbox",
    "flatpak-spawn",
    "limactl",
    "multipass",
    "vagrant",
    "wsl",
    "wsl.exe",
    "ssh",
    "mosh",
    "autossh",
    "kubectl",
    "oc",
    "gcloud",
    "az",
    "flyctl",
    "socat",
    "nc",
    "mcp-remote",
    "mcp-proxy",
];

/// Whether the process of `command` may only be the near end of a server that runs elsewhere: one of its words names
/// such a program, also behind `sh -c`, `env`, `sudo`, `npx` or `uvx`.
pub fn runs_elsewhere(command: &[String]) -> bool {
    let apart = |c: char| c.is_whitespace() || ";|&()'\"`$".contains(c);
    command.iter().flat_map(|word| word.split(apart)).any(|word| {
        let name = word.rsplit('/').next().unwrap_or(word);
        // As npm and PyPI write versions: mcp-remote@latest, mcp-proxy==0.8.
        let name = name.split(['@', '=']).next().unwrap_or(name);
        ELSEWHERE.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_is_known_by_its_launcher() {
        let elsewhere =
            |text: &str| runs_elsewhere(&text.split(", ").map(str::to_owned).collect::<Vec<_>>());
        for yes in [
            "docker, run, -i, --rm, mcp/fetch",
            "/usr/bin/ssh, host, python server.py",
            "sh, -c, cd /srv && exec docker run -i x",
            "npx, -y, mcp-remote@latest, https://example.org/mcp",
            "sudo, -E, podman, run, -i, x",
            "kubectl, exec, -i, pod, --, server",
        ] {
            assert!(elsewhere(yes), "{yes}");
        }
        for no in [
            "npx, -y, @scope/server",
            "uvx, server",
            "sh, -c, exec server",
            "python, dockerize.py",
            "ssh-agent-mcp",
        ] {
            assert!(!elsewhere(no), "{no}");
        }
    }
}
