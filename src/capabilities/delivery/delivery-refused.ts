// The failure of a delivery whose receiver did not accept it.

export class DeliveryRefused extends Error {
  /** Whether a later try may succeed. */
  readonly isTemporary: boolean;

  constructor(message: string, mayPass: boolean) {
    super(message);
    this.name = 'DeliveryRefused';
    this.isTemporary = mayPass;
  }
}
