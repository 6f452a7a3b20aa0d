// What the layout of the pages shows of the tenant, and which images are on a page.
import type { Frozen } from '../records/record.ts';
import type { TenantRecord } from '../records/tenant.ts';

/** The tenant in the layout. */
interface Described {
  name: string;
  logo: string | undefined;
  favicon: string | undefined;
  terms: string | undefined;
  privacy: string | undefined;
  support: string | undefined;
}

/** What models have images of. */
interface WithLogos {
  client?: { logo?: string };
  connections?: readonly { logo?: string }[];
  others?: readonly { logo?: string }[];
}

/** The addresses of the images on a page. */
export function imagesOf(
  { logo, favicon }: Described,
  { client, connections = [], others = [] }: WithLogos,
): string[] {
  const logos = [logo, favicon, ...[client ?? {}, ...connections, ...others].map((one) => one.logo)];
  return logos.filter((address) => address !== undefined);
}

/** The tenant in the layout, with addresses of the right kind alone. */
export function describeTenant(
  tenant: Frozen<TenantRecord>['tenant'],
  branding: Frozen<TenantRecord>['branding'],
): Described {
  return {
    name: tenant.friendly_name,
    logo: addressOf(IMAGE, branding.logo_url ?? tenant.picture_url),
    favicon: addressOf(IMAGE, branding.favicon_url),
    terms: addressOf(LINK, branding.terms_url),
    privacy: addressOf(LINK, branding.privacy_url),
    support: addressOf(LINK, tenant.support_url),
  };
}

const LINK = /^https?:/i;
const IMAGE = /^(https?:|data:image\/)/i;

/** The address if it is of that kind; undefined for `javascript:` and the like. */
function addressOf(kind: RegExp, address: string | undefined): string | undefined {
  return address !== undefined && kind.test(address) ? address : undefined;
}
