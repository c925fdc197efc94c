package main

import (
	"net"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/dns/dnsmessage"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/discovery/v1"
)

const zone = ".svc.cluster.local."

// newNamesCommand answers questions for the names of headless services, and of the pods in them that have a hostname, as CoreDNS does.
func newNamesCommand() *cobra.Command {
	var kubeconfig, address string
	command := &cobra.Command{Use: "names", RunE: func(*cobra.Command, []string) error {
		client, err := newClient(kubeconfig)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		slices := factory.Discovery().V1().EndpointSlices().Lister()
		factory.Start(nil)
		socket, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		return serveNames(socket, slices)
	}}
	addKubeconfig(command, &kubeconfig)
	command.Flags().StringVar(&address, "address", "", "where to listen")
	return command
}

func serveNames(socket net.PacketConn, slices listers.EndpointSliceLister) error {
	buffer := make([]byte, 4096)
	for {
		length, peer, err := socket.ReadFrom(buffer)
		if err != nil {
			return err
		}
		var question dnsmessage.Message
		if question.Unpack(buffer[:length]) != nil || len(question.Questions) != 1 {
			continue
		}
		if answer, err := answerName(question, slices); err == nil {
			socket.WriteTo(answer, peer)
		}
	}
}

func answerName(message dnsmessage.Message, slices listers.EndpointSliceLister) ([]byte, error) {
	question := message.Questions[0]
	found := addresses(strings.ToLower(question.Name.String()), slices)
	answer := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: message.ID, Response: true, Authoritative: true, RecursionDesired: message.RecursionDesired, RecursionAvailable: true,
		},
		Questions: message.Questions,
	}
	if len(found) == 0 {
		answer.RCode = dnsmessage.RCodeNameError
	}
	if question.Type == dnsmessage.TypeA {
		for _, address := range found {
			answer.Answers = append(answer.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 1},
				Body:   &dnsmessage.AResource{A: [4]byte(address.To4())},
			})
		}
	}
	return answer.Pack()
}

// addresses of [HOSTNAME.]SERVICE.NAMESPACE.svc.cluster.local.
func addresses(name string, slices listers.EndpointSliceLister) []net.IP {
	labelsOfName, isOurs := strings.CutSuffix(name, zone)
	parts := strings.Split(labelsOfName, ".")
	if !isOurs || len(parts) < 2 || len(parts) > 3 {
		return nil
	}
	service, namespace := parts[len(parts)-2], parts[len(parts)-1]
	ofService := labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: service})
	found, _ := slices.EndpointSlices(namespace).List(ofService)
	var ips []net.IP
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			isReady := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			isMeant := len(parts) == 2 || endpoint.Hostname != nil && *endpoint.Hostname == parts[0]
			if isReady && isMeant {
				ips = append(ips, net.ParseIP(endpoint.Addresses[0]))
			}
		}
	}
	return ips
}
