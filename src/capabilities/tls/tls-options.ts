// The server's TLS options: the local CA of development, certificate files, or none behind a proxy.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../../runtime/clock.ts';
import { wrapError } from '../../runtime/wrap-error.ts';
import { localCertificate } from './authority.ts';
import type { TlsSettings } from './tls-settings.ts';

interface TlsOptions {
  /** PEM; undefined behind a proxy that terminates TLS. */
  secure?: { cert: string; key: string };
  /** Path of the CA certificate to trust, in development. */
  caFile?: string;
  /** PEM: the authorities that are trusted for clients. */
  clientCa?: string;
  /** Warnings for the operator, one sentence each. */
  warnings: string[];
}

interface ServerSettings extends Pick<TlsSettings, 'tls' | 'mtls'> {
  dataDir: string;
  baseUrl: string;
  /** The address to listen on. */
  host: string;
}

/**
 * Reads or makes certificate and key, and reads the authorities for client certificates.
 * @throws Error with the reason in one sentence.
 */
export async function tlsOptions(settings: ServerSettings, clock: Clock): Promise<TlsOptions> {
  const { mtls } = settings;
  const options = await serverOptions(settings, clock);
  return mtls?.caFile === undefined ? options : { ...options, clientCa: await readAuthorities(mtls.caFile) };
}

async function readAuthorities(file: string): Promise<string> {
  const ca = await readFile(file, 'utf8').catch(wrapError(`MTLS_CA: ${file} cannot be read`));
  try {
    new X509Certificate(ca);
  } catch (thrown) {
    wrapError(`MTLS_CA: ${file} holds no certificates in PEM`)(thrown);
  }
  return ca;
}

async function serverOptions(settings: ServerSettings, clock: Clock): Promise<TlsOptions> {
  switch (settings.tls.mode) {
    case 'auto': {
      const directory = join(settings.dataDir, 'tls');
      const { cert, key, caFile, warnings } = await localCertificate(
        directory,
        localHosts(settings),
        clock,
      ).catch((thrown: unknown) => {
        // A system error (full disk, permissions) says nothing about the content of the files.
        const isSystem = thrown instanceof Error && 'code' in thrown;
        const hint = isSystem ? '' : '; without the directory they are made anew';
        return wrapError(`the certificates in ${directory} cannot be used${hint}`)(thrown);
      });
      return { secure: { cert, key }, caFile, warnings };
    }
    case 'files': {
      const { certFile, keyFile } = settings.tls;
      return readCertificateFiles(certFile, keyFile, hostOf(settings), clock);
    }
    case 'proxy':
      return { warnings: [] };
  }
}

/** Returns the host names by which a browser on this machine may reach the server. */
function localHosts(settings: ServerSettings): string[] {
  const { host } = settings;
  const listenHosts = host === '0.0.0.0' || host === '::' ? [] : [host];
  return [...new Set(['localhost', '127.0.0.1', '::1', hostOf(settings), ...listenHosts])];
}

/** Returns the host; an IPv6 address without the brackets of URLs (RFC 3986 §3.2.2). */
function hostOf({ baseUrl }: ServerSettings): string {
  return new URL(baseUrl).hostname.replace(/^\[|\]$/g, '');
}

/** Reads a certificate and its key; warns of what clients will refuse. */
async function readCertificateFiles(
  certFile: string,
  keyFile: string,
  host: string,
  clock: Clock,
): Promise<TlsOptions> {
  const read = (file: string, variable: string) =>
    readFile(file, 'utf8').catch(wrapError(`${variable}: ${file} cannot be read`));
  const secure = { cert: await read(certFile, 'TLS_CERT'), key: await read(keyFile, 'TLS_KEY') };
  try {
    createSecureContext(secure);
  } catch (thrown) {
    wrapError(`TLS_CERT, TLS_KEY: ${certFile} and ${keyFile} are not a certificate and its key, in PEM`)(
      thrown,
    );
  }
  const cert = new X509Certificate(secure.cert);
  const warnings: string[] = [];
  if (Date.parse(cert.validTo) <= clock()) warnings.push(`TLS_CERT: ${certFile} expired on ${cert.validTo}`);
  if (Date.parse(cert.validFrom) > clock())
    warnings.push(`TLS_CERT: ${certFile} is valid from ${cert.validFrom} on`);
  if ((isIP(host) === 0 ? cert.checkHost(host) : cert.checkIP(host)) === undefined) {
    warnings.push(`TLS_CERT: ${certFile} is not for ${host}, the host of BASE_URL`);
  }
  return { secure, warnings };
}
