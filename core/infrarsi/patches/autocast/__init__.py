"""What bf16 autocast needs to know: where it goes, on which device, and what stays fp32."""
