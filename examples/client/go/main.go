// Command go sets the weight of a flow and prints what happens in the fabric.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/headgate/headgate/api/client"
	headgatev1 "github.com/headgate/headgate/api/headgate/v1"
)

func main() {
	var o client.Options
	server := flag.String("server", "127.0.0.1:9600", "`host:port` of the controller, or several with commas")
	flag.StringVar(&o.CA, "tls-ca", "", "`file` of the authority that signed the controller's certificate")
	flag.StringVar(&o.TokenFile, "token-file", "", "`file` with the token")
	flag.Parse()
	conn, err := client.Dial(*server, o)
	if err != nil {
		log.Fatal(err)
	}
	ctx, flow := context.Background(), &headgatev1.FlowKey{SrcIpv4: "10.0.1.1", DstIpv4: "10.0.2.1", SrcPort: 4242, DstPort: 4791}
	set, err := headgatev1.NewWeightServiceClient(conn).SetWeight(ctx, &headgatev1.SetWeightRequest{Flow: flow, Weight: 2, Application: "web"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("weight", set.GetWeight())
	events, err := headgatev1.NewFabricServiceClient(conn).WatchEvents(ctx, &headgatev1.WatchEventsRequest{Recent: 10})
	for err == nil {
		var e *headgatev1.Event
		if e, err = events.Recv(); err == nil {
			fmt.Println(e.GetTime().AsTime(), e.GetKind(), e.GetSubject(), e.GetMessage())
		}
	}
	log.Fatal(err)
}
