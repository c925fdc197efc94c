// Kubernetes for tests: `tfdeploy-test-kube PART FLAG…` is one of its parts. A package that several of them contain is linked once.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var parts = map[string]func() *cobra.Command{
	"apiserver":          apiserver.NewAPIServerCommand,
	"controller-manager": manager.NewControllerManagerCommand,
	"scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":            func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"names":              newNamesCommand,
	"forward":            newForwardCommand,
	"volumes":            newVolumesCommand,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: PART FLAG…; the parts are", slices.Sorted(maps.Keys(parts)))
		os.Exit(2)
	}
	part := parts[os.Args[1]]()
	os.Args = os.Args[1:]
	os.Exit(cli.Run(part))
}
