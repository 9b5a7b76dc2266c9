"""The rules of Rota: values in, values out. No input or output, no clock, no third party."""
