// Reads messages that anybody can send. Each is measured before it is parsed (scan.ts). Small ones are read where they
// arrive, which takes a few milliseconds at most; larger ones in a thread, so that nobody else waits for them.
import { parseDom, plain } from './dom.ts';
import { NS } from './names.ts';
import { type MessageLimits, measure, SMALL } from './scan.ts';
import { type Verifier, wrongSignature } from './signature.ts';
import { createXmlThread, type XmlThread } from './thread.ts';
import { type SignedPlace, verifySigned } from './verification.ts';
import { badMessage, descendantsOf, isNamed, notXml, type XmlElement } from './xml.ts';

export interface OpenMessage {
  root: XmlElement;
  /** Verifies a signature: {@link verifySigned}. @throws AuthError 400. */
  verify(place: SignedPlace, verifier: Verifier): Promise<XmlElement>;
}

export interface XmlReader extends Pick<XmlThread, 'close' | 'isHeldUp'> {
  /** @throws AuthError 400 for anything but plain, bounded, well-formed XML. */
  open(text: string, limits: MessageLimits): Promise<OpenMessage>;
}

/** Creates a reader. Its thread is started by the first large message, and ends when there are no more. */
export function createXmlReader(): XmlReader {
  const { run, ...thread } = createXmlThread();
  return {
    ...thread,
    open: async (text, limits) =>
      measure(text, limits).isSmall
        ? {
            root: plain(parseDom(text)),
            verify: async (place, verifier) => verifySigned(text, place, verifier),
          }
        : {
            root: await run({ text }),
            verify: (place, verifier) => run({ text, signed: { place, verifier } }),
          },
  };
}

/**
 * Reads a message at once.
 * @param limits larger ones only for what an operator wrote, where nobody else waits.
 * @returns its root element.
 * @throws AuthError 400 for anything but plain, bounded XML.
 */
export function parseXml(text: string, limits = SMALL): XmlElement {
  measure(text, limits);
  return plain(parseDom(text));
}

/** Verifies the only signature in a small message, that of its root: {@link verifySigned}. @throws AuthError 400. */
export function verifyRoot(text: string, verifier: Verifier): XmlElement {
  measure(text, SMALL);
  const content = verifySigned(text, 'root', verifier);
  const hasAnother = descendantsOf(content).some((one) => isNamed(one, NS.signature, 'Signature'));
  if (hasAnother) throw wrongSignature();
  return content;
}

const ENCODINGS = ['utf-8', 'us-ascii'];

/**
 * @throws AuthError 400 when it is not UTF-8, or declares another encoding: whoever signed it would have read other
 *   text.
 */
export function textOfMessage(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes);
  const [declaration = ''] = text.startsWith('<?xml') ? text.slice(0, 256).split('?>', 1) : [];
  const declared = /\sencoding\s{0,9}=\s{0,9}["']([\w.-]{1,40})["']/.exec(declaration)?.[1];
  if (declared !== undefined && !ENCODINGS.includes(declared.toLowerCase())) {
    throw badMessage('The SAML message must be in UTF-8.');
  }
  return text;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (thrown) {
    throw notXml(thrown);
  }
}
