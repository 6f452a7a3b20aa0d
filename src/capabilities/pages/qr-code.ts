// QR codes on the pages.

/** Returns a QR code as an SVG with one path, dark on light. */
export async function qrCode(text: string): Promise<string> {
  // Loaded on demand: few pages have a QR code.
  const { default: codes } = await import('qrcode');
  return codes.toString(text, { type: 'svg', errorCorrectionLevel: 'M', margin: 0 });
}
