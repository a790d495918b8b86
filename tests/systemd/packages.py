"""Installs the packages of /media/debs without apt, uses them, and purges them."""

USE = r"""
set -e
dpkg --force-unsafe-io -i /media/debs/*.deb >/dev/null
for name in streamfs streamfs-doc libstream python3-libstream streamfs-source; do
  test "$(dpkg-query -W -f '${Status}' "$name")" = "install ok installed"
done
unset PYTHONDONTWRITEBYTECODE
/usr/bin/python3 -c 'import libstream'
test -f /usr/src/streamfs/third_party/README.md
man -w stream-run libstream streamfs-profiles >/dev/null 2>&1 || ! command -v man >/dev/null
id classifierd >/dev/null
test -d /run/streamfs
cd /srv
mkdir mnt
ssd-sim create /srv/ssd --size 64M --streams 4 --op 0.1 >/dev/null
mkfs.streamfs --meta /srv/META emu:/srv/ssd >/dev/null
mount -t streamfs -o meta=/srv/META emu:/srv/ssd /srv/mnt
echo kept >/srv/mnt/file
streamctl sync /srv/mnt
streamctl trim /srv/mnt
umount /srv/mnt
fsck.streamfs -n -f --meta /srv/META emu:/srv/ssd >/dev/null
mount -t fuse.streamfs -o meta=/srv/META emu:/srv/ssd /srv/mnt
cat /srv/mnt/file
umount /srv/mnt
fsck.streamfs -n -f --meta /srv/META emu:/srv/ssd >/dev/null
mkdir -p /etc/streamfs/srv /var/lib/classifierd
stream-run -- true
systemctl -q enable streamfs@srv-mnt.service classifierd@srv-mnt.service streamfs-trim@srv-mnt.timer
test -L /etc/systemd/system/multi-user.target.wants/streamfs@srv-mnt.service
dpkg --force-unsafe-io --remove streamfs >/dev/null
test -d /etc/streamfs
test ! -e /usr/bin/streamctl
dpkg --force-unsafe-io --purge \
  streamfs streamfs-doc libstream python3-libstream streamfs-source >/dev/null
test ! -e /etc/streamfs
find /etc/systemd -xtype l -print
find /usr /etc -xdev -newer /media/debs/since -name '*stream*' -print
"""

USE_DAEMON = """
set -e
dpkg --force-unsafe-io -i /media/debs/*.deb >/dev/null
unset PYTHONDONTWRITEBYTECODE
PYTHONPATH=/nowhere classifierd --help >/dev/null
dpkg --force-unsafe-io --purge classifierd >/dev/null
test ! -e /usr/lib/streamfs
test ! -e /usr/bin/classifierd
echo done
"""
