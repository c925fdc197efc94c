#!/bin/sh
# First process of a cluster's namespaces: the network of its nodes, in which the control plane runs. plane.sh FOLDER ADDRESS NODES
set -eu
ip link set lo up
ip link add nodes type bridge
ip addr add "$2/24" dev nodes
ip link set nodes up
for number in $(seq "$3"); do
    ip route add "10.244.$number.0/24" via "10.77.0.1$number" # the node's pods
done
tail -f /dev/null
