package store
import ("testing";"encoding/binary";"github.com/cockroachdb/pebble/v2")
func BenchmarkRaw(b *testing.B){
 for _, mt := range []uint64{2<<20,4<<20,8<<20,16<<20} {
 for _, lag := range []uint64{8} {
 b.Run("", func(b *testing.B){
 db,err:=pebble.Open(b.TempDir(),&pebble.Options{MemTableSize:mt,MemTableStopWritesThreshold:4,Logger:nolog{}})
 if err!=nil {b.Fatal(err)}
 defer db.Close()
 body:=noise(300)
 var seq uint64
 n:=64
 k:=make([]byte,9);k[0]='j'
 b.ResetTimer()
 start:=cpuTime()
 for b.Loop(){
  pb:=db.NewBatch()
  for range n { seq++; binary.BigEndian.PutUint64(k[1:],seq); pb.Set(k,body,nil)}
  if seq>lag*64 { for i:=range n { binary.BigEndian.PutUint64(k[1:],seq-lag*64-63+uint64(i)); pb.SingleDelete(k,nil)}}
  if err:=pb.Commit(pebble.Sync);err!=nil{b.Fatal(err)}
  pb.Close()
 }
 b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N*n), "cpu-ns/job")
 })
 }}
}
type nolog struct{}
func (nolog) Infof(string,...any){}
func (nolog) Errorf(string,...any){}
func (nolog) Fatalf(string,...any){}
