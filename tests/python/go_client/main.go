// Calls a server over HTTP/1.1 or, with TLS, HTTP/2, as Go's own client does: 200 requests on 20 goroutines.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func call(client *http.Client, url string, body []byte) error {
	response, err := client.Post(url+"/echo", "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	back, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != 200 || !bytes.Equal(back, body) {
		return fmt.Errorf("status %d, %d octets", response.StatusCode, len(back))
	}
	return nil
}

func main() {
	url, ca := os.Args[1], os.Args[2]
	transport := &http.Transport{ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 20}
	if pem, err := os.ReadFile(ca); err == nil {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	client := &http.Client{Transport: transport}
	var group sync.WaitGroup
	for worker := 0; worker < 20; worker++ {
		group.Add(1)
		go func(size int) {
			defer group.Done()
			for round := 0; round < 10; round++ {
				if err := call(client, url, make([]byte, size)); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			}
		}(worker * 10000)
	}
	group.Wait()
	response, err := client.Get(url + "/")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	response.Body.Close()
	fmt.Println(response.Proto)
}
