// QR codes on the pages.
import QRCode from 'qrcode';

/** A QR code as SVG of one path, dark on light. */
export function qrCode(text: string): Promise<string> {
  return QRCode.toString(text, { type: 'svg', errorCorrectionLevel: 'M', margin: 0 });
}
