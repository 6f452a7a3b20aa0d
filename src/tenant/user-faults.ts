// Development users of a tenant file who could never log in, or whom the start could not make.
import { normalizeEmail } from '../records/email.ts';
import { LONGEST_PASSWORD, normalizePassword } from '../records/passwords.ts';
import type { TenantFile } from '../records/tenant.ts';
import { directoryOf } from './names.ts';

/** One sentence for each of them. */
export function userFaults(file: TenantFile): string[] {
  const { users } = file;
  const taken = new Set<string>();
  return users.flatMap((user, index) => {
    const { email, password, username } = user;
    const faults: string[] = [];
    if (normalizeEmail(email) === undefined) faults.push(`email: ${email} is no e-mail address`);
    // What a login refuses without looking: a password that nobody can send, or that is never hashed.
    if (Buffer.byteLength(normalizePassword(password)) > LONGEST_PASSWORD) {
      faults.push(`password: more than ${LONGEST_PASSWORD} bytes of UTF-8, which no login accepts`);
    }
    if (!password.isWellFormed()) faults.push('password: half of a surrogate pair, which no login can send');
    if (username !== undefined) {
      const name = `${username.trim().toLowerCase()} in ${directoryOf(file, user)}`;
      if (username.trim() === '') faults.push('username: must not be empty');
      // It would answer to the e-mail login of somebody else.
      if (normalizeEmail(username) !== undefined) faults.push(`username: ${username} is an e-mail address`);
      if (taken.has(name)) faults.push(`username: ${name} is there twice`);
      taken.add(name);
    }
    return faults.map((fault) => `users[${index}].${fault}`);
  });
}
