"""Where jobs are kept. `contract` is what every store promises; `opening` alone names the concrete ones."""
