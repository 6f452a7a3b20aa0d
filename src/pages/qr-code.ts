// QR codes on the pages.

/** A QR code as SVG of one path, dark on light. */
export async function qrCode(text: string): Promise<string> {
  // Few pages have one.
  const { default: codes } = await import('qrcode');
  return codes.toString(text, { type: 'svg', errorCorrectionLevel: 'M', margin: 0 });
}
