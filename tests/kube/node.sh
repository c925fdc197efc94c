#!/bin/sh
# First process of a node's namespaces; what ends, starts again, as by systemd. node.sh FOLDER NUMBER NODES KUBE IMAGES
set -eu
if [ $$ = 1 ]; then
    unshare --net sh "$0" "$@"
    exit
fi
folder=$1 number=$2 nodes=$3 kube=$4 images=$5

# As on a machine, what is in /run goes with it. A kubelet and its CNI plugins write nowhere else but into the node's folder.
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/log
mkdir -p "$folder/lib" "$folder/work"
mount -t overlay -o "lowerdir=/var/lib,upperdir=$folder/lib,workdir=$folder/work" overlay /var/lib
# A kubelet sets these for the whole machine, unless it finds its own values.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    value="/run/$(echo "${setting%=*}" | tr / .)"
    echo "${setting#*=}" >"$value"
    mount --bind "$value" "/proc/sys/${setting%=*}"
done

in_cluster() { nsenter --net=/proc/1/ns/net "$@"; }
in_cluster ip link delete "node$number" 2>/dev/null || true # the kernel removes that of a killed node a little later
ip link set lo up
ip link add eth0 type veth peer name "node$number" netns 1
in_cluster ip link set "node$number" master nodes up
ip addr add "10.77.0.1$number/24" dev eth0
ip link set eth0 up
ip route add default via 10.77.0.1
for other in $(seq "$nodes"); do
    [ "$other" = "$number" ] || ip route add "10.244.$other.0/24" via "10.77.0.1$other"
done
echo 1 >/proc/sys/net/ipv4/ip_forward

keep() {
    while :; do
        "$@" >>"$folder/log" 2>&1 || true
        sleep 0.2
    done
}
keep containerd --config="$folder/containerd.toml" &
export CONTAINERD_ADDRESS=/run/containerd/containerd.sock CONTAINERD_NAMESPACE=k8s.io
until ctr version >/dev/null 2>&1; do sleep 0.05; done
if [ ! -e "$folder/imported" ]; then
    ctr images import "$images" >>"$folder/log"
    touch "$folder/imported"
fi
until [ -e "$folder/../api-is-ready" ]; do sleep 0.05; done
keep "$kube" kubelet --config="$folder/kubelet.json" --kubeconfig="$folder/../kubeconfig-inside" --root-dir="$folder/kubelet" \
    --cert-dir="$folder/kubelet" --hostname-override="node-$number" --node-ip="10.77.0.1$number"
