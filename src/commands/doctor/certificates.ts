// Checks certificates: those of the server, and the one that is shown at the public address.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { tlsOptions } from '../../capabilities/tls/tls-options.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Settings } from '../../settings/index.ts';
import { DAY_MS, type Finding, findings, messageOf } from './finding.ts';

/**
 * Services that renew certificates automatically do so a month ahead. When less than this is left, the renewal has
 * failed.
 */
const RENEWAL_MS = 21 * DAY_MS;
const TIMEOUT_MS = 5_000;

const certificate = findings('certificate');

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
        : [certificateFinding(`TLS_CERT (${tls.certFile})`, new X509Certificate(secure.cert), clock)]),
    ];
  } catch (thrown) {
    return [certificate.fault(messageOf(thrown))];
  }
}

async function checkAuthority(file: string, clock: Clock): Promise<Finding> {
  const pem = await readFile(file, 'utf8').catch(() => undefined);
  if (pem === undefined) return certificate.ok('the first start makes a local CA');
  try {
    return certificateFinding('the local CA', new X509Certificate(pem), clock);
  } catch {
    const remedy = 'put it back, or remove its directory and trust the CA that the next start makes';
    return certificate.fault(`${file} is no certificate in PEM: ${remedy}`);
  }
}

/** Checks the certificate at the public address behind a proxy: clients see that one, and no file of ours. */
export async function checkServedCertificate(settings: Settings, clock: Clock): Promise<Finding[]> {
  if (settings.tls.mode !== 'proxy') return [];
  const { hostname, host } = new URL(settings.baseUrl);
  try {
    return [
      certificateFinding(`the one at ${host}`, await servedCertificate(settings.baseUrl), clock, hostname),
    ];
  } catch (thrown) {
    return [certificate.warning(`${host} could not be asked for its own: ${messageOf(thrown)}`)];
  }
}

function certificateFinding(name: string, served: X509Certificate, clock: Clock, hostname?: string): Finding {
  const remaining = Date.parse(served.validTo) - clock();
  if (remaining <= 0) return certificate.fault(`${name} expired on ${served.validTo}`);
  if (Date.parse(served.validFrom) > clock())
    return certificate.fault(`${name} is valid from ${served.validFrom} on`);
  const isFor = (host: string) => (isIP(host) === 0 ? served.checkHost(host) : served.checkIP(host));
  if (hostname !== undefined && isFor(hostname) === undefined)
    return certificate.fault(`${name} is not for ${hostname}`);
  const text = `${name} is good until ${served.validTo}`;
  return remaining < RENEWAL_MS ? certificate.warning(`${text}: renew it`) : certificate.ok(text);
}

/** Returns the certificate that a host shows. It is accepted whatever it is, and judged afterwards. */
function servedCertificate(baseUrl: string): Promise<X509Certificate> {
  const { hostname, port } = new URL(baseUrl);
  const host = hostname.replace(/^\[|\]$/g, '');
  const servername = isIP(host) === 0 ? { servername: host } : {};
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port || 443), ...servername, rejectUnauthorized: false });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('no answer in time')));
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      const shown = socket.getPeerX509Certificate();
      socket.destroy();
      if (shown === undefined) reject(new Error('it shows no certificate'));
      else resolve(shown);
    });
  });
}
