"""greet.v1.GreetService: one service with all four kinds of call, its two servers and its client."""
