package main

import (
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"
)

// newForwardCommand connects the socket that it has as its standard input, which is in the machine's network, with an address in its own.
func newForwardCommand() *cobra.Command {
	var address string
	command := &cobra.Command{Use: "forward", RunE: func(*cobra.Command, []string) error {
		listener, err := net.FileListener(os.Stdin)
		if err != nil {
			return err
		}
		for {
			outside, err := listener.Accept()
			if err != nil {
				return err
			}
			go forward(outside.(*net.TCPConn), address)
		}
	}}
	command.Flags().StringVar(&address, "to", "", "host and port")
	return command
}

func forward(outside *net.TCPConn, address string) {
	defer outside.Close()
	dialed, err := net.Dial("tcp", address)
	if err != nil {
		outside.SetLinger(0) // as where nothing listens, if a little later
		return
	}
	inside := dialed.(*net.TCPConn)
	defer inside.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(inside, outside)
		inside.CloseWrite()
	}()
	io.Copy(outside, inside)
	outside.CloseWrite()
	<-done
}
