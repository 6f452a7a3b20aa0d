// Checks certificates: those of the server, and the one that is shown at the public address.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import type { Clock } from '../runtime/clock.ts';
import type { Settings } from '../settings.ts';
import { tlsOptions } from '../tls/options.ts';
import { DAY, type Finding, findings, messageOf } from './finding.ts';

/**
 * Services that renew certificates automatically do so a month ahead. When less than this is left, the renewal has
 * failed.
 */
const SOON = 21 * DAY;
const PATIENCE = 5_000;

const certificate = findings('certificate');

/** Checks the certificate files of the settings, or the local CA where there is one. */
export async function checkCertificateFiles(settings: Settings, clock: Clock): Promise<Finding[]> {
  const { tls, dataDir } = settings;
  if (tls.mode === 'proxy') return [];
  if (tls.mode === 'auto') return [await checkAuthority(join(dataDir, 'tls', 'ca.pem'), clock)];
  try {
    const { secure, warnings } = await tlsOptions(settings, clock);
    return [
      ...warnings.map((one) => certificate.fault(one)),
      ...(warnings.length > 0 || secure === undefined
        ? []
        : [judged(`TLS_CERT (${tls.certFile})`, new X509Certificate(secure.cert), clock)]),
    ];
  } catch (thrown) {
    return [certificate.fault(messageOf(thrown))];
  }
}

async function checkAuthority(file: string, clock: Clock): Promise<Finding> {
  const pem = await readFile(file, 'utf8').catch(() => undefined);
  if (pem === undefined) return certificate.ok('the first start makes a local CA');
  try {
    return judged('the local CA', new X509Certificate(pem), clock);
  } catch {
    const remedy = 'put it back, or remove its directory and trust the CA that the next start makes';
    return certificate.fault(`${file} is no certificate in PEM: ${remedy}`);
  }
}

/** Checks the certificate at the public address behind a proxy: clients see that one, and no file of ours. */
export async function checkShownCertificate(settings: Settings, clock: Clock): Promise<Finding[]> {
  if (settings.tls.mode !== 'proxy') return [];
  const { hostname, host } = new URL(settings.baseUrl);
  try {
    return [judged(`the one at ${host}`, await shownAt(settings.baseUrl), clock, hostname)];
  } catch (thrown) {
    return [certificate.warning(`${host} could not be asked for its own: ${messageOf(thrown)}`)];
  }
}

function judged(what: string, shown: X509Certificate, clock: Clock, hostname?: string): Finding {
  const left = Date.parse(shown.validTo) - clock();
  if (left <= 0) return certificate.fault(`${what} expired on ${shown.validTo}`);
  if (Date.parse(shown.validFrom) > clock())
    return certificate.fault(`${what} is valid from ${shown.validFrom} on`);
  const isFor = (host: string) => (isIP(host) === 0 ? shown.checkHost(host) : shown.checkIP(host));
  if (hostname !== undefined && isFor(hostname) === undefined)
    return certificate.fault(`${what} is not for ${hostname}`);
  const text = `${what} is good until ${shown.validTo}`;
  return left < SOON ? certificate.warning(`${text}: renew it`) : certificate.ok(text);
}

/** Returns the certificate that a host shows. It is accepted whatever it is, and judged afterwards. */
function shownAt(baseUrl: string): Promise<X509Certificate> {
  const { hostname, port } = new URL(baseUrl);
  const host = hostname.replace(/^\[|\]$/g, '');
  const servername = isIP(host) === 0 ? { servername: host } : {};
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port || 443), ...servername, rejectUnauthorized: false });
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error('no answer in time')));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const shown = socket.getPeerX509Certificate();
      socket.destroy();
      if (shown === undefined) reject(new Error('it shows no certificate'));
      else resolve(shown);
    });
  });
}
